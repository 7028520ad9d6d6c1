package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// InstanceSpec is all that a runtime needs to start one instance: the
// function's own code, and its agent beside it.
type InstanceSpec struct {
	// Function is the function as it was when the instance was ordered. It
	// is shared and must not be changed.
	Function *v1alpha1.Function
	// CID is the instance's id, unique within the function.
	CID invoke.CID
	// Token is the secret by which the agent proves itself to the scheduler.
	Token string
	// Node is where it must run.
	Node string
}

// Exit says that an instance has ended, or that it never began.
type Exit struct {
	// FunctionUID and CID name the instance.
	FunctionUID string
	CID         invoke.CID
	// Reason is for a person to read: which process ended and how.
	Reason string
	// LogTail are the last lines that the function wrote, at most 20.
	LogTail []string
}

// Runtime runs instances. All of its methods return at once.
type Runtime interface {
	// Start begins to start an instance. A failure is reported as an Exit,
	// like every other end of an instance: one Exit for each Start.
	Start(spec InstanceSpec)
	// Stop ends an instance: politely at first, by force soon after. An
	// instance that is unknown or has ended is no error.
	Stop(functionUID string, cid invoke.CID)
	// Exits tells of every instance that ended. It must be read without
	// delay.
	Exits() <-chan Exit
}
