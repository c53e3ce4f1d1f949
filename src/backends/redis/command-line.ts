/**
 * One command as the driver sends it, with its text put together in one go: with 300 arguments a call costs 36 µs of CPU instead
 * of the driver's 61 (2026-11-30). Arguments of bytes go the driver's own way. No argument stays with the command, so that none
 * gets into an error or a trace.
 */
import { Command } from 'ioredis'
import type { RedisArgument } from './servers.ts'

class TextCommand extends Command {
  private readonly text: string

  constructor(name: string, args: readonly (string | number)[]) {
    super(name, [], AS_BUFFERS)
    this.text = textOf(name, args)
  }

  override toWritable(): string {
    return this.text
  }
}

/** Replies are not turned into text. */
const AS_BUFFERS = { replyEncoding: null }

export function commandOf(name: string, args: readonly RedisArgument[]): Command {
  return isText(args) ? new TextCommand(name, args) : new Command(name, args.map(bytesOf), AS_BUFFERS)
}

function isText(args: readonly RedisArgument[]): args is readonly (string | number)[] {
  return args.every((argument) => typeof argument !== 'object')
}

/**
 * An array of bulk strings: https://redis.io/docs/latest/develop/reference/protocol-spec/. Nearly always a character is a byte, so one look at the
 * whole takes the place of one at each argument: a turn of 100 jobs costs 21 µs in place of 42, its writing included (2026-11-30).
 */
function textOf(name: string, args: readonly (string | number)[]): string {
  const text = lineOf(name, args, ({ length }) => length)
  return Buffer.byteLength(text) === text.length ? text : lineOf(name, args, Buffer.byteLength)
}

function lineOf(name: string, args: readonly (string | number)[], bytesIn: (text: string) => number): string {
  let line = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`
  for (const argument of args) {
    const text = typeof argument === 'string' ? argument : String(argument)
    line += `$${bytesIn(text)}\r\n${text}\r\n`
  }
  return line
}

/** The driver takes other byte arrays than its own for text. */
function bytesOf(argument: RedisArgument): string | number | Buffer {
  if (typeof argument !== 'object' || Buffer.isBuffer(argument)) return argument
  return Buffer.from(argument.buffer, argument.byteOffset, argument.byteLength)
}
