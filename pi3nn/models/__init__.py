"""Trained models away from their run: fitting, predicting, files, scikit-learn estimators."""
