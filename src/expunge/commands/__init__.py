"""One module per command of the command line: options in, one function called, a view out."""
