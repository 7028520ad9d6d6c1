// Package lambdaclients has the official runtime clients of AWS Lambda for tests: awslambdaric for
// Python and aws-lambda-ric for Node.js. Tests that use it have the build tag clients, which
// make test-clients gives.
package lambdaclients
