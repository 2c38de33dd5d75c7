// dist
