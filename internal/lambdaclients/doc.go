// Package lambdaclients installs the official runtime clients of AWS Lambda for
// tests: awslambdaric for Python and aws-lambda-ric for Node.js. They are
// installed below the user's cache folder and kept there. Tests that use it have the
// build tag clients, which make test-clients gives.
package lambdaclients
