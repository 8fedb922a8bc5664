"""The independent oracle: it shares no code with the product, and reads models, plans and masks itself."""
