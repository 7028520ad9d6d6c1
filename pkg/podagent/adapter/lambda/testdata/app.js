const fs = require("node:fs/promises");
const path = require("node:path");

exports.handler = async (event, context) => {
  if ("fail" in event) throw new Error(event.fail);
  if ("meet" in event) await meet(event.meet, context.awsRequestId);
  return {
    event,
    id: context.awsRequestId,
    arn: context.invokedFunctionArn,
    name: context.functionName,
    inTime: context.getRemainingTimeInMillis() > 0,
  };
};

// Returns when two calls are in here at a time.
async function meet(folder, name) {
  await fs.writeFile(path.join(folder, name), "");
  while ((await fs.readdir(folder)).length < 2) await new Promise((done) => setTimeout(done, 1));
}

exports.stream = awslambda.streamifyResponse(async (event, stream) => {
  stream = awslambda.HttpResponseStream.from(stream, { statusCode: 201, headers: { "X-A": "1" } });
  stream.write("a");
  stream.write(event.text);
  if ("fail" in event) throw new Error(event.fail);
  stream.end();
});
