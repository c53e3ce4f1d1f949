throw new RangeError('thrown while loading')
