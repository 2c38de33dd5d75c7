// metrics
