import { describeWhoPays } from './describe-who-pays.ts';

describeWhoPays('sqlite');
