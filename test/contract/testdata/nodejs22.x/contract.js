const fs = require('node:fs');

exports.handler = async (event) => {
  if ('fail' in event) throw new Error(event.fail);
  const word = fs.readFileSync('word.txt', 'utf8');
  return { event, greeting: process.env.GREETING ?? null, spare: process.env.WINDLASS_SPARE ?? null, word };
};
