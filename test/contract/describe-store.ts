import { describe } from 'vitest';
import { promisesOfChanges } from './promises/changes.ts';
import { promisesOfCheckpoints } from './promises/checkpoints.ts';
import { promisesOfClaiming } from './promises/claiming.ts';
import { promisesOfCounting } from './promises/counting.ts';
import { promisesOfEnqueueing } from './promises/enqueueing.ts';
import { promisesOfFailureGroups } from './promises/failure-groups.ts';
import { promisesOfFairness } from './promises/fairness.ts';
import { promisesOfGroups } from './promises/groups.ts';
import { promisesOfImporting } from './promises/importing.ts';
import { promisesOfLateSuccesses } from './promises/late-successes.ts';
import { promisesOfLeases } from './promises/leases.ts';
import { promisesOfLimits } from './promises/limits.ts';
import { promisesOfMeetingClaims } from './promises/meeting.ts';
import { promisesOfMoving } from './promises/moving.ts';
import { promisesOfPruning } from './promises/pruning.ts';
import { promisesOfRecords } from './promises/records.ts';
import { promisesOfRecovery } from './promises/recovery.ts';
import { promisesOfRedrives } from './promises/redrives.ts';
import { promisesOfSchedules } from './promises/schedules.ts';
import { promisesOfSettling } from './promises/settling.ts';
import { promisesOfSourceStates } from './promises/source-states.ts';
import { promisesOfSources } from './promises/sources.ts';
import { promisesOfTime } from './promises/time.ts';
import { promisesOfUniqueKeys } from './promises/unique.ts';
import { promisesOfUpkeep } from './promises/upkeep.ts';
import type { StoreFactory } from './scene.ts';

/** What every store promises. A store that brings a factory is held to all of it. */
export function describeStore(name: string, factory: StoreFactory): void {
  describe(name, () => {
    describe('enqueueing', () => promisesOfEnqueueing(factory));
    describe('importing from another queue', () => promisesOfImporting(factory));
    describe('unique keys', () => promisesOfUniqueKeys(factory));
    describe('groups', () => promisesOfGroups(factory));
    describe('claiming', () => promisesOfClaiming(factory));
    describe('fairness', () => promisesOfFairness(factory));
    describe('claims', () => promisesOfMeetingClaims(factory));
    describe('settling', () => promisesOfSettling(factory));
    describe('checkpoints', () => promisesOfCheckpoints(factory));
    describe('leases', () => promisesOfLeases(factory));
    describe('late successes', () => promisesOfLateSuccesses(factory));
    describe('recovery', () => promisesOfRecovery(factory));
    describe('operators', () => promisesOfMoving(factory));
    describe('redrives', () => promisesOfRedrives(factory));
    describe('schedules', () => promisesOfSchedules(factory));
    describe('counting', () => promisesOfCounting(factory));
    describe('groups of failures', () => promisesOfFailureGroups(factory));
    describe('records', () => promisesOfRecords(factory));
    describe('sources and queues', () => promisesOfSources(factory));
    describe('states of sources', () => promisesOfSourceStates(factory));
    describe('changes of sources and queues', () => promisesOfChanges(factory));
    describe('limits', () => promisesOfLimits(factory));
    describe('time', () => promisesOfTime(factory));
    describe('pruning', () => promisesOfPruning(factory));
    describe('upkeep', () => promisesOfUpkeep(factory));
  });
}
