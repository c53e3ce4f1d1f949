// What the runs of a side come to: the median of its figures and of the ratios of each pair of runs.

export function summary(runs) {
  const sorted = [...runs].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2
  return { median, min: sorted[0], max: sorted.at(-1), runs }
}

function valuesOf(results, key) {
  return results.map(({ extra = {} }) => extra[key]).filter((value) => value !== undefined)
}

/** The median of every further figure beside the main one, and what else each run has to tell. */
export function sideSummary(results) {
  const keys = Object.keys(results[0]?.extra ?? {})
  const extra = Object.fromEntries(keys.map((key) => [key, summary(valuesOf(results, key)).median]))
  const details = results.map(({ detail }) => detail).filter((detail) => detail !== undefined)
  return {
    ...summary(results.map(({ value }) => value)),
    ...(keys.length === 0 ? {} : { extra }),
    ...(details.length === 0 ? {} : { details }),
  }
}

/** The value below which a share of them lies; not a number when there are none. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort()
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** How many times better ours is in each further figure that both sides have and that `units` gives a direction. */
export function extraRatios(ours, theirs, units) {
  const both = Object.entries(units).filter(
    ([key, { higherIsBetter }]) =>
      higherIsBetter !== undefined && valuesOf(ours, key).length > 0 && valuesOf(theirs, key).length > 0,
  )
  return Object.fromEntries(
    both.map(([key, { higherIsBetter }]) => {
      const pairs = ours.map((our, run) => [our.extra[key], theirs[run].extra[key]])
      return [key, summary(pairs.map(([our, their]) => (higherIsBetter ? our / their : their / our))).median]
    }),
  )
}
