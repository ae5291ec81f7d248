/** Of a failure whose attempt was given back. */
export const REFUNDED = 'Its source turned out to be down, so the attempt was given back.';
