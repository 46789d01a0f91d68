"""The linear maximin game: losses, solvers, the inner predictor and the certificate."""
