// Package agentenv says how an agent is told what to do: by environment
// variables, which a process has as well as a container.
//
// Whoever starts an instance fills a Config and passes its Environ; the agent
// reads it back with Parse, which checks it. The two are tested to agree.
package agentenv
