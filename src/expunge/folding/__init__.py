"""How a fold is found: a predictor of the class, maps onto the barycentre, moves by cells."""
