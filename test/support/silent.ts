/** A logger for tests in which failures are the subject, so that the output stays the test runner's. */
import { pino } from 'pino'

export const silent = pino({ level: 'silent' })
