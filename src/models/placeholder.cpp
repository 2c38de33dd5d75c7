// models
