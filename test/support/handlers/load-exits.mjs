process.exit(5)
