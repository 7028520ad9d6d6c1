exports.application = (request, response) => response.end('here');
