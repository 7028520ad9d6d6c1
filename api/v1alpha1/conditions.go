package v1alpha1

// Condition types of a Function.
const (
	// ConditionReady is true when the function can be called: an instance
	// is there, or the last attempt to start one did not fail. Its reason says
	// whether one of this revision has started.
	ConditionReady = "Ready"
	// ConditionProvisioned is true when there are at least as many instances
	// as scaling.minInstances asks for, and false while they cannot be had.
	ConditionProvisioned = "Provisioned"
	// ConditionProgressing is true while instances are being created, or
	// replaced after a change.
	ConditionProgressing = "Progressing"
)

// ConditionActive of a FunctionRevision is true while calls go to it. Its Ready is true
// once an instance of it has started.
const ConditionActive = "Active"

// Condition reasons of a Function.
const (
	// ReasonAccepted says that the function is registered and can be called.
	// No instance of this revision has started yet.
	ReasonAccepted = "Accepted"
	// ReasonStarted says that the function can be called, and that an instance
	// of this revision has started.
	ReasonStarted = "Started"
	// ReasonInvalid says that the function is not registered, because the
	// message's fields are wrong.
	ReasonInvalid = "Invalid"
	// ReasonUnknownRuntime says that there is no Runtime of that name.
	ReasonUnknownRuntime = "UnknownRuntime"
	// ReasonUnobserved says that no scheduler has told of the function yet.
	ReasonUnobserved = "Unobserved"
	// ReasonDraining says that the function is being deleted.
	ReasonDraining = "Draining"
	// ReasonProvisioned says that there are as many instances as wanted.
	ReasonProvisioned = "Provisioned"
	// ReasonCreating says that instances are being created.
	ReasonCreating = "Creating"
	// ReasonUnconfirmed says that the scheduler cannot reach etcd, so that
	// nobody can confirm that the function is still its to provide for.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonReplacing says that instances of an older revision finish.
	ReasonReplacing = "Replacing"
	// ReasonStable says that nothing is being created or replaced.
	ReasonStable = "Stable"
)

// Messages of the Ready condition.
const (
	MessageAccepted = "the function can be called; no instance of it has started yet"
	MessageStarted  = "the function can be called; an instance of it has started"
)

// Reasons why an instance could not start or ended. They are reasons of
// conditions and of Events.
const (
	// ReasonStartFailed says that the last instance could not start, for none
	// of the reasons below.
	ReasonStartFailed = "StartFailed"
	// ReasonStartTimeout says that it did not become ready in time.
	ReasonStartTimeout = "StartTimeout"
	// ReasonAgentSilent says that nothing more was heard of its agent, or that it
	// did not end in time.
	ReasonAgentSilent = "AgentSilent"
	// ReasonImagePullFailed says that an image could not be had.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonConfigMissing says that a Secret or ConfigMap, or a key in it, is
	// missing.
	ReasonConfigMissing = "ConfigMissing"
	// ReasonFunctionExited says that the function's program ended.
	ReasonFunctionExited = "FunctionExited"
	// ReasonCallBroken says that a call did not end as it should, so that the
	// instance was given up.
	ReasonCallBroken = "CallBroken"
	// ReasonOutOfMemory says that the function exceeded its memory limit.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonQuotaExceeded says that the namespace's quota is used up.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodRefused says that the cluster refused the pod for another
	// reason, such as an admission policy.
	ReasonPodRefused = "PodRefused"
	// ReasonNodeRefused says that the node refused the pod, for want of a
	// resource or because it was evicted.
	ReasonNodeRefused = "NodeRefused"
	// ReasonNodeFull says that the node had less room than was known when it was
	// picked: pods that end hold theirs until they have, and others may be faster.
	ReasonNodeFull = "NodeFull"
	// ReasonNodeLost says that the node is gone or does not answer.
	ReasonNodeLost = "NodeLost"
	// ReasonClusterUnavailable says that the Kubernetes API could not be asked for
	// the pod, did not answer, or has too many pods to create already.
	ReasonClusterUnavailable = "ClusterUnavailable"
	// ReasonNoCapacity says that no node has room.
	ReasonNoCapacity = "NoCapacity"
)
