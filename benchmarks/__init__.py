"""How fast the package is, as ratios to things that everybody can run."""
