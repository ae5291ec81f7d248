// The theme of VitePress with the fonts of the reader's system. Its styles come first, so that ours count.
import theme from 'vitepress/theme-without-fonts';
import './contrast.css';

export default theme;
