/** The public API of Holdfast. Everything a user needs is exported here by name, and nothing else is public. */
export type { JobEvent, JobEventType } from './actors/job-machine.ts'
export { jobMachine } from './actors/job-machine.ts'
export type { Inspect } from './actors/lifecycle.ts'
export type { Capabilities } from './backends/capabilities.ts'
export type { LaneStats, RateLimit, ThrottleReason } from './backends/protocol/index.ts'
export type { TransactionHandle, TransactionRows, TransactionValue } from './backends/transactional.ts'
export type { Blocker } from './blockers.ts'
export type { Holdfast } from './client.ts'
export { connect } from './client.ts'
export type { Duration, Instant } from './config.ts'
export type { ConnectOptions, StoreClient, StorePool } from './connect-options.ts'
export type {
  AppContext,
  ContractOptions,
  EnqueueOptions,
  Handler,
  InlineHandler,
  JobContext,
  JobContract,
  JobLogger,
  RetryOption,
  RetryPolicyContext,
  ThreadHandler,
} from './contract.ts'
export { defineJob, handle, inThread, retry } from './contract.ts'
export type { ErrorCategory, ErrorCode } from './errors.ts'
export { ERROR_CODES, HoldfastError, isHoldfastError, PermanentError, RetryAfter } from './errors.ts'
export type { ExplainEvent, Explanation, NextAction } from './explain.ts'
export type { Isolation, IsolationOptions } from './isolation.ts'
export type {
  AttemptOutcome,
  AttemptRecord,
  Failure,
  JobDetail,
  JobId,
  JobRecord,
  JobState,
  RetryPolicy,
} from './job.ts'
export { JOB_STATES } from './job.ts'
export type { JobHandle, ResultOptions } from './job-handle.ts'
export type { LogLine, LogOptions } from './job-logs.ts'
export type { EnqueueRequest, EnqueueRequests, JobPage, ListOptions, ReplayOptions } from './job-requests.ts'
export type {
  EnqueueRate,
  LanePolicy,
  LanePolicyOptions,
  LanePolicyReport,
  StartRate,
  ThrottleCount,
} from './lane-policy.ts'
export type { Migrated, MigrateOptions } from './migrate.ts'
export { migrate } from './migrate.ts'
export type { Keep, LaneRetention, LaneRetentionOptions, Retention, RetentionOptions } from './retention.ts'
export type { Health, HealthOptions, Maintained, Stats } from './store-operations.ts'
export type { JobEventFields } from './telemetry.ts'
export type { Transaction } from './transactions/caller-transaction.ts'
export { VERSION } from './version.ts'
export type { NeedsContext, StopOptions, Worker, WorkerOptions } from './worker.ts'
export type { SlotEventFields, WorkerEvents } from './worker-events.ts'
export type { WorkerHealth } from './worker-health.ts'
export type { WorkerInfo } from './worker-list.ts'
