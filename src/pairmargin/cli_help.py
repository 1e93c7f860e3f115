"""What ``pairmargin --help`` says. It imports nothing, so that the answer comes as soon as Python has started."""

COMMANDS = {
    "fit": "Cluster a file by answers: labels, a model, a report and a record, in a folder.",
    "predict": "Write the clusters of a new file.",
    "evaluate": "Hold a model against answers that it has not learned from.",
    "label": 'Answer "same" or "different" in the browser, and take home the clusters.',
    "demo": "Cluster handwritten digits from 100 answers and write a report.",
    "data": "See which data sets there are, and download them.",
    "experiment": "Run the paper's experiments, and tell what came out.",
}

HELP = f"""\
Usage: pairmargin [OPTIONS] COMMAND [ARGS]...

Cluster anything from a few "same" or "different" answers.

Commands:
{chr(10).join(f"  {name:<12}{summary}" for name, summary in COMMANDS.items())}

Options:
  --version   Show the version and leave.
  -h, --help  Show this message and leave; after a command, that of the command.

Exit codes: 0 done, 1 something failed or is missing here, 2 wrong input, options or
place to write to, 130 stopped by Ctrl-C.
"""
