// @ts-check

/** @type {import('holdfast').WorkerOptions} */
export const WORKER = {
  name: 'worker-001',
  capabilities: { cpu: 8, gpu: 'RTX5090' },
  leaseFor: '60s',
  pollInterval: '1s',
};
