// Package agentenv defines the settings of an agent as environment variables, which work alike
// for processes and containers.
//
// The program that starts an instance fills a Config and passes its Environ; the agent reads
// the Config back with Parse, which validates it. A test keeps the two in agreement.
package agentenv
