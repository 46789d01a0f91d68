"""Runs an experiment of the paper: repeats, resumes, averages, and writes tables and figures."""
