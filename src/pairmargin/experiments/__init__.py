"""The paper's experiments: what is run (specs), how (runner), and what comes out (report)."""
