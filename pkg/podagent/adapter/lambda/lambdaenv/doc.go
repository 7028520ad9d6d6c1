// Package lambdaenv lists the environment variables with which an unchanged AWS Lambda runtime
// client runs against the lambda adapter. They are those that the runtime clients for Python,
// Node.js, Go, Java and Rust read. Reasons that are not obvious stand beside their variable.
//
// The variables are a pure function of a Config. The package is separate from the adapter
// because programs that start functions need it without the adapter's server.
package lambdaenv
