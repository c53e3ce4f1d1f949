/** Waits for conditions on something that changes: whoever changes it calls `look`. */
export class Watch<T> {
  private readonly subject: T
  private checks: (() => void)[] = []

  constructor(subject: T) {
    this.subject = subject
  }

  /** Resolves the next time `condition` holds; it is looked at now and after every change. */
  until(condition: (subject: T) => boolean): Promise<void> {
    if (condition(this.subject)) return Promise.resolve()
    return new Promise((resolve) => {
      const check = (): void => {
        if (condition(this.subject)) resolve()
        else this.checks.push(check)
      }
      this.checks.push(check)
    })
  }

  look(): void {
    if (this.checks.length === 0) return
    const checks = this.checks
    this.checks = []
    for (const check of checks) check()
  }
}
