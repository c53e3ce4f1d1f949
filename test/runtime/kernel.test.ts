/** The kernel of the actors: bounded mailboxes, answers with a deadline, restarts up to a limit, then escalation. */
import { describe, expect, it } from 'vitest'
import { Actor } from '#dist/src/actors/actor.js'
import { Supervisor } from '#dist/src/actors/supervisor.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { eventually } from '../support/event.ts'
import { silent } from '../support/silent.ts'

type Message =
  | { readonly type: 'echo'; readonly reply: (text: string) => void }
  | { readonly type: 'fail' }
  | { readonly type: 'silence' }

class Probe extends Actor<Message> {
  restarts = 0
  readonly ended: string[]

  constructor(name: string, ended: string[] = []) {
    super(name)
    this.ended = ended
  }

  protected override receive(message: Message): void {
    if (message.type === 'fail') throw new Error('a bug')
    if (message.type === 'echo') message.reply('heard')
  }

  protected override onRestart(): void {
    this.restarts += 1
  }

  protected override onStop(): void {
    this.ended.push(this.name)
  }
}

describe('an actor', () => {
  it('answers, or the question fails at its deadline', async () => {
    const probe = new Probe('probe')
    await probe.start()
    expect(await probe.ask<string>((reply) => ({ type: 'echo', reply }), 1_000, systemTimers)).toBe('heard')
    await expect(probe.ask(() => ({ type: 'silence' }), 20, systemTimers)).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  it('refuses what its mailbox cannot hold, and everything once it has stopped', async () => {
    const probe = new Probe('probe')
    await probe.start()
    let accepted = 0
    while (probe.tell({ type: 'silence' }) === 'accepted') accepted += 1
    expect(accepted).toBe(100_000)
    expect(probe.tell({ type: 'silence' })).toBe('full')
    await eventually(() => probe.tell({ type: 'silence' }) === 'accepted', 'the mailbox is emptied')
    await probe.stop()
    expect(probe.tell({ type: 'silence' })).toBe('stopped')
  })
})

describe('a supervisor', () => {
  it('restarts an actor that throws three times, then escalates once', async () => {
    const escalations: unknown[] = []
    const supervisor = new Supervisor({
      clock: systemClock,
      logger: silent,
      onEscalate: (error) => escalations.push(error),
    })
    const probe = new Probe('probe')
    await supervisor.start(probe)
    for (let time = 0; time < 6; time += 1) probe.tell({ type: 'fail' })
    expect(await probe.ask<string>((reply) => ({ type: 'echo', reply }), 1_000, systemTimers)).toBe('heard')
    expect(probe.restarts).toBe(3)
    expect(escalations).toHaveLength(1)
  })

  it('stops its children in reverse order, also those started before one that does not start', async () => {
    const ended: string[] = []
    const supervisor = new Supervisor({ clock: systemClock, logger: silent, onEscalate: () => {} })
    class Broken extends Probe {
      protected override onStart(): void {
        throw new Error('no')
      }
    }
    await supervisor.start(new Probe('first', ended))
    await supervisor.start(new Probe('second', ended))
    await expect(supervisor.start(new Broken('third'))).rejects.toThrow('no')
    expect(ended).toEqual(['second', 'first'])
  })
})
