// Package cluster simulates provisioning in virtual time: functions that are called,
// a scheduler that decides how many instances there are, and machines on which they
// start and run.
package cluster
