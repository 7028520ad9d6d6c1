// Package runtimes contains the built-in language runtimes: for each RuntimeName a
// small shim, embedded in the binary, that loads a handler and speaks the
// function's protocol with nothing but the language's standard library.
//
// Launch decides how a function with a runtime is run: it checks that handler
// and code fit each other, writes the shim and inline code, and returns the
// command line and the environment. It starts nothing. The images of the
// runtimes hold the same shims.
//
// # How a shim learns what to run
//
// Variables, as for a custom runtime of AWS Lambda, and nothing else:
// $LAMBDA_TASK_ROOT is the folder of the code, which is only read; $_HANDLER
// is module.function; $WINDLASS_PROTOCOL is LambdaRuntime (the default) or HTTP.
//
// In Python the module is a file .py or a package, and the last dot of the
// handler ends its name. In Node.js it is a file .js, .mjs or .cjs, in this order,
// and the first dot behind the last slash ends its name. A .js file without a
// package.json may be CommonJS or an ES module, whichever its syntax shows; with
// Node.js before 20.19 such an ES module finds built-in modules only.
//
// # Spare instances
//
// With WINDLASS_SPARE set, and the protocol LambdaRuntime, a shim does not know yet
// what to run. It loads all that it needs besides the code, and asks
// GET /windlass/v1/assignment at $AWS_LAMBDA_RUNTIME_API for the variables and the files
// of a function, however long that takes. It writes the files below
// $LAMBDA_TASK_ROOT, which it may make and write to, removes WINDLASS_SPARE, sets the
// variables except LAMBDA_TASK_ROOT, and continues as if it had been started with them.
// A file whose path leads out of the folder, and anything else in an assignment that is
// invalid, is an init error (Runtime.BadAssignment). It asks once in its life.
//
// # Promises of the shims
//
// With the protocol LambdaRuntime a shim is a client of the Lambda Runtime API
// at $AWS_LAMBDA_RUNTIME_API. It runs as many loops as
// $AWS_LAMBDA_MAX_CONCURRENCY says (1 by default; threads in Python), and each
// loop keeps one connection.
//
// The event is what the body decodes to as JSON, {} if it is empty. A body that is
// not JSON fails the call with Runtime.UnmarshalError.
//
// The result is sent as JSON, but bytes (Buffer, Uint8Array) are sent as they
// are, as application/octet-stream. Handlers may be asynchronous in both
// languages; in Node.js one with three parameters is given a callback. In Python
// each loop keeps one event loop of asyncio, so that clients kept from call to call
// go on working; tasks in the background pause between calls. What a
// handler throws is reported with its type, message and stack trace (in Node.js
// with those of its causes), and the loop goes on. A handler that is not of the form above, a module that does not
// load, or one that has no such handler is reported as an init error
// (Runtime.MalformedHandlerName, Runtime.ImportModuleError,
// Runtime.HandlerNotFound), and the process ends with status 1. Where it waits for an
// event or an assignment and reads 204, the instance has ended as it should, and so does
// the process, without a word. It ends with status 1 when the Runtime API is lost, or
// does not listen within 10 seconds, and when the function leaves the process in an
// unknown state: sys.exit in Python, an uncaught exception in Node.js.
//
// With the protocol HTTP a shim serves the handler on 127.0.0.1:$PORT. In
// Python the handler is a WSGI application; in Node.js it is a function of
// (request, response), such as an Express application. $WINDLASS_CONCURRENCY
// is the number of calls that the Python shim runs at a time (1 by default);
// Node.js needs no such bound. Idle connections are never closed by the
// shims, because a server that closes one in the moment in which the agent
// uses it again would lose a call.
//
// On SIGTERM a shim finishes the calls that run and ends with status 0; when
// none runs it ends at once. Logs appear line by line, without delay.
package runtimes
