import { scheduleJson } from '../../views/schedule-text.ts';
import { NOTE } from '../common-fields.ts';
import { textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const NAME = { name: textField('the name of a schedule', 255) };

export const SCHEDULES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'schedules',
    summary: 'the schedules: tasks that workers enqueue by the clock',
    needs: 'view',
    answer: 'schedules',
    run: async ({ holdfast }) => ({ items: (await holdfast.schedules.list()).map(scheduleJson) }),
  }),
  route({
    method: 'GET',
    path: 'schedules/{name}',
    summary: 'everything about one schedule, and its next times',
    needs: 'view',
    params: NAME,
    answer: 'schedules.show',
    run: async ({ holdfast, path: { name } }) => {
      const schedule = scheduleJson(await holdfast.schedules.get(name));
      return { schedule, next: (await holdfast.schedules.next(name)).map((time) => time.toISOString()) };
    },
  }),
  route({
    method: 'POST',
    path: 'schedules/{name}/pause',
    summary: 'enqueue nothing more until the schedule is resumed',
    needs: 'schedules',
    params: NAME,
    body: { note: NOTE },
    answer: 'schedules.pause',
    run: async ({ holdfast, path: { name }, by }) => ({
      exit: 0,
      schedule: scheduleJson(await holdfast.schedules.pause(name, by)),
    }),
  }),
  route({
    method: 'POST',
    path: 'schedules/{name}/resume',
    summary: 'go on with a paused schedule; times during the pause are not made up for',
    needs: 'schedules',
    params: NAME,
    answer: 'schedules.resume',
    run: async ({ holdfast, path: { name } }) => ({
      exit: 0,
      schedule: scheduleJson(await holdfast.schedules.resume(name)),
    }),
  }),
  route({
    method: 'POST',
    path: 'schedules/{name}/run',
    summary: 'enqueue the task of a schedule now',
    needs: 'schedules',
    params: NAME,
    answer: 'schedules.run',
    run: async ({ holdfast, path: { name } }) => {
      const { id, created } = await holdfast.schedules.run(name);
      return { exit: 0, id, created };
    },
  }),
  route({
    method: 'POST',
    path: 'schedules/{name}/remove',
    summary: 'remove a schedule; its tasks stay',
    needs: 'schedules',
    params: NAME,
    answer: 'schedules.remove',
    run: async ({ holdfast, path: { name } }) => {
      await holdfast.schedules.remove(name);
      return { exit: 0, name };
    },
  }),
];
