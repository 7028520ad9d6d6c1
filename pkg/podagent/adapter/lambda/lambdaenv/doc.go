// Package lambdaenv says which environment variables a function needs to run
// an AWS Lambda runtime client, unchanged, against the lambda adapter.
//
// It is apart from the adapter because those who start functions need it and
// the adapter's server they do not. It is a pure function of its Config. The
// variables are what the runtime clients for Python, Node.js, Go, Java and
// Rust read; each reason that is not plain stands beside its variable.
package lambdaenv
