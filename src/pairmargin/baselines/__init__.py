"""The methods that pairmargin is compared with, one file a method."""
