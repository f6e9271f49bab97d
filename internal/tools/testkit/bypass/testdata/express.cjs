// A site of static files: express as its documentation shows it, with routes
// in which case matters. Usage: node express.cjs FOLDER
const express = require('express');

const app = express();
app.set('case sensitive routing', true);
app.use(express.static(process.argv[2]));
const server = app.listen(0, '127.0.0.1', () => {
  console.log(`listening on port ${server.address().port}`);
});
