import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';
import { answerFor } from './postgres.ts';

/** Prisma's codes (P1 engine and connection, P2 queries, P3 migrations, P5 and P6 Accelerate). */
const PRISMA: Table = {
  P1000: 'auth.invalid',
  P1001: { reason: 'db.connection', ambiguous: false },
  P1002: { reason: 'db.connection', ambiguous: false },
  P1003: 'db.schema',
  P1008: 'db.timeout',
  P1009: 'conflict',
  P1010: 'auth.forbidden',
  P1011: 'tls.handshake',
  P1012: 'code.bug',
  P1013: 'validation',
  P1014: 'db.schema',
  P1015: 'not_implemented',
  P1016: 'code.bug',
  P1017: 'db.connection',
  P2000: 'db.data',
  P2001: 'not_found',
  P2002: 'db.unique',
  P2003: 'db.constraint',
  P2004: 'db.constraint',
  P2005: 'db.data',
  P2006: 'db.data',
  P2007: 'db.data',
  P2008: 'db.schema',
  P2009: 'validation',
  P2010: 'db.schema unknown',
  P2011: 'db.constraint',
  P2012: 'validation',
  P2013: 'validation',
  P2014: 'db.constraint',
  P2015: 'not_found',
  P2016: 'validation',
  P2017: 'db.constraint',
  P2018: 'not_found',
  P2019: 'validation',
  P2020: 'db.data',
  P2021: 'db.schema',
  P2022: 'db.schema',
  P2023: 'db.data',
  P2024: 'db.pool_timeout',
  P2025: 'not_found',
  P2026: 'not_implemented',
  P2028: 'db.transaction transient',
  P2029: 'too_large',
  P2030: 'db.schema',
  P2031: 'db.schema',
  P2033: 'db.data',
  P2034: 'db.serialization',
  P2035: 'code.bug',
  P2037: { reason: 'db.connection', ambiguous: false },
  P5000: 'validation',
  P5002: 'auth.invalid',
  P5004: 'not_implemented',
  P5006: 'http.5xx',
  P5008: 'quota.exhausted',
  P5009: 'db.timeout',
  P5011: 'http.429',
  P5012: 'validation',
  P6000: 'http.5xx',
  P6001: 'validation',
  P6002: 'auth.invalid',
  P6003: 'quota.exhausted',
  P6004: 'db.timeout',
  P6005: 'validation',
  P6006: 'not_implemented',
  P6008: 'db.connection',
  P6009: 'too_large',
  P6010: 'auth.forbidden',
  P6100: 'db.connection',
};

const PRISMA_NAMES: Table = {
  PrismaClientValidationError: 'code.bug',
  PrismaClientRustPanicError: 'db.internal',
};

/** Errors of Sequelize, TypeORM, Knex, Objection, MikroORM and Bookshelf. The error of the driver that they wrap says more. */
const NAMES: Table = {
  SequelizeUniqueConstraintError: 'db.unique',
  SequelizeForeignKeyConstraintError: 'db.constraint',
  SequelizeExclusionConstraintError: 'db.constraint',
  SequelizeUnknownConstraintError: 'db.constraint',
  SequelizeValidationError: 'validation',
  SequelizeOptimisticLockError: 'conflict transient',
  SequelizeConnectionAcquireTimeoutError: 'db.pool_timeout',
  SequelizeEmptyResultError: 'not_found',
  SequelizeEagerLoadingError: 'code.bug',
  SequelizeAssociationError: 'code.bug',
  SequelizeQueryError: 'code.bug',
  EntityNotFoundError: 'not_found',
  EntityNotFound: 'not_found',
  EntityMetadataNotFoundError: 'code.bug',
  EntityPropertyNotFoundError: 'code.bug',
  OptimisticLockVersionMismatchError: 'conflict transient',
  OptimisticLockError: 'conflict transient',
  OptimisticLockCanNotBeUsedError: 'code.bug',
  LockNotSupportedOnGivenDriverError: 'not_implemented',
  CannotConnectAlreadyConnectedError: 'code.bug',
  ConnectionIsNotSetError: 'db.connection unknown',
  ConnectionNotFoundError: 'code.bug',
  DataSourceNotFoundError: 'code.bug',
  TransactionNotStartedError: 'code.bug',
  QueryRunnerAlreadyReleasedError: 'code.bug',
  PessimisticLockTransactionRequiredError: 'code.bug',
  MustBeEntityError: 'code.bug',
  MissingDriverError: 'code.bug',
  MissingPrimaryColumnError: 'code.bug',
  UpdateValuesMissingError: 'validation',
  NoConnectionOptionError: 'code.bug',
  KnexTimeoutError: 'db.pool_timeout',
  ResourceRequestTimeoutError: 'db.pool_timeout',
  NoResultError: 'not_found',
  UniqueViolationError: 'db.unique',
  ForeignKeyViolationError: 'db.constraint',
  NotNullViolationError: 'db.constraint',
  CheckViolationError: 'db.constraint',
  ConstraintViolationError: 'db.constraint',
  UniqueConstraintViolationException: 'db.unique',
  ForeignKeyConstraintViolationException: 'db.constraint',
  NotNullConstraintViolationException: 'db.constraint',
  CheckConstraintViolationException: 'db.constraint',
  TableNotFoundException: 'db.schema',
  TableExistsException: 'conflict',
  InvalidFieldNameException: 'db.schema',
  NonUniqueFieldNameException: 'db.schema',
  SyntaxErrorException: 'db.schema',
  DeadlockException: 'db.serialization',
  LockWaitTimeoutException: 'db.locked',
  ReadOnlyException: 'db.unavailable',
  TransactionRollbackError: 'db.transaction',
};

export const prisma: Family = { name: 'prisma', vendorNames: PRISMA_NAMES, recognise: byPrisma };

function byPrisma(fields: ErrorFields): Finding | undefined {
  const code = fields.code ?? fields.get('errorCode');
  const field = fields.code === undefined ? 'errorCode' : 'code';
  if (code === 'P2010') return byRawQuery(fields);
  if (typeof code === 'string' && /^P[1-6]\d{3}$/.test(code))
    return lookUp(PRISMA, code, field) ?? found('unknown', field);
  if (fields.name !== 'PrismaClientInitializationError') return undefined;
  return found(/Authentication failed/.test(fields.message) ? 'auth.invalid' : 'db.connection unknown', 'name', 'hint');
}

/** Names that say less than the driver's error that they wrap. */
const VAGUE: Table = {
  SequelizeConnectionError: 'db.connection',
  SequelizeConnectionRefusedError: 'net.refused',
  SequelizeConnectionTimedOutError: 'db.connection',
  SequelizeHostNotFoundError: 'net.dns',
  SequelizeHostNotReachableError: 'net.unreachable',
  SequelizeAccessDeniedError: 'auth.invalid',
  SequelizeTimeoutError: 'db.timeout',
  SequelizeDatabaseError: 'db.schema unknown',
  DataError: 'db.data',
  ConnectionException: 'db.connection',
  SequelizeInvalidConnectionError: 'validation',
};

/** A raw query of Prisma, which also has the database's own code. */
function byRawQuery(fields: ErrorFields): Finding {
  const state = fields.in('meta', 'code');
  const answer = typeof state === 'string' && state.length === 5 ? answerFor(state) : undefined;
  return answer === undefined ? found('db.schema unknown', 'code') : found(answer, 'meta.code');
}

export const mappers: Family = { name: 'mappers', vendorNames: NAMES, names: VAGUE };
