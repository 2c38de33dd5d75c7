// tasks
