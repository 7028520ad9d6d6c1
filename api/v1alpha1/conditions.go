package v1alpha1

// Condition types of a Function. The first four are always there; Reconciling, Stalled and
// InstancesFailing only while they are true, and the first two of these never at once.
const (
	// ConditionReady is true when a call made now is served, or starts an instance of a
	// revision that is known to start.
	ConditionReady = "Ready"
	// ConditionAccepted is true when the spec is valid and may run.
	ConditionAccepted = "Accepted"
	// ConditionRevisionReady is true when status.latestCreatedRevisionName is proven.
	ConditionRevisionReady = "RevisionReady"
	// ConditionMinInstancesReady is true when there are at least as many instances as
	// scaling.minInstances and the windows that are open ask for.
	ConditionMinInstancesReady = "MinInstancesReady"
	// ConditionHostsAccepted is true when the function has the hosts that spec.expose asks
	// for. It is there if there are any, or if the function or a tag of it can have no host.
	ConditionHostsAccepted = "HostsAccepted"
	// ConditionSchedulingClass is false when the function does not get what
	// spec.template.scheduling asks for. It is there for LatencyCritical, and for all others
	// that ask for something while there is no node scheduling.
	ConditionSchedulingClass = "SchedulingClass"
	// ConditionReconciling is true while a change of the spec comes into use; not when
	// the number of instances changes.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when waiting will not help.
	ConditionStalled = "Stalled"
	// ConditionInstancesFailing is true while further instances do not start, though
	// others serve.
	ConditionInstancesFailing = "InstancesFailing"
)

// ConditionActive of a FunctionRevision is true while calls go to it. Its Ready is true
// once an instance of it has started.
const ConditionActive = "Active"

// ConditionWarmPoolsReady of a ClusterRuntime is true when its warm pools have as many
// spare instances as they are to have. Its Ready is true when functions of it can be run,
// and its Accepted and Stalled are as those of a Function.
const ConditionWarmPoolsReady = "WarmPoolsReady"

// Condition reasons of a Function, of its revisions, and of a ClusterRuntime.
const (
	// ReasonPending says that nobody has looked at the function yet, or that the revision of
	// spec.template does not exist yet.
	ReasonPending = "Pending"
	// ReasonAccepted says that the spec is valid and may run.
	ReasonAccepted = "Accepted"
	// ReasonStarted says that an instance of the revision has started.
	ReasonStarted = "Started"
	// ReasonVerifying says that the first instance of the revision is being started.
	ReasonVerifying = "Verifying"
	// ReasonVerificationDeferred says that it is started when a node has room.
	ReasonVerificationDeferred = "VerificationDeferred"
	// ReasonNotVerified says that no instance of the revision has started, and that none
	// is started to prove it.
	ReasonNotVerified = "NotVerified"
	// ReasonInvalid says that the fields in the message are wrong. Calls still go to the
	// revisions that had them.
	ReasonInvalid = "Invalid"
	// ReasonRuntimeNotFound says that there is no ClusterRuntime of that name. Calls still go
	// to the revisions that had them.
	ReasonRuntimeNotFound = "RuntimeNotFound"
	// ReasonRevisionMissing says that spec.traffic names a revision that does not exist.
	ReasonRevisionMissing = "RevisionMissing"
	// ReasonRevisionRefused says that the API server lets no revision of spec.template be
	// created. Calls still go where they went before.
	ReasonRevisionRefused = "RevisionRefused"
	// ReasonUnobserved says that no scheduler has told of the function yet.
	ReasonUnobserved = "Unobserved"
	// ReasonDraining says that the function is being deleted.
	ReasonDraining = "Draining"
	// ReasonEnoughInstances says that there are as many instances as wanted.
	ReasonEnoughInstances = "EnoughInstances"
	// ReasonCreating says that instances are being created.
	ReasonCreating = "Creating"
	// ReasonUnconfirmed says that the scheduler cannot reach etcd, so that
	// nobody can confirm that the function is still its to provide for.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonStepping says that a part of the calls goes to the revision.
	ReasonStepping = "Stepping"
	// ReasonSchedulerBehind says that a scheduler has not taken up the latest change yet.
	ReasonSchedulerBehind = "SchedulerBehind"
	// ReasonHostConflict says that an older function has a host that the function asks for.
	ReasonHostConflict = "HostConflict"
	// ReasonHostNotPermitted says that its namespace may not have such a host.
	ReasonHostNotPermitted = "HostNotPermitted"
	// ReasonHostTooLong says that the function, or a tag of it, can have no host, as its
	// names are too long for one, or begin with xn.
	ReasonHostTooLong = "HostTooLong"
	// ReasonPermitted says that the function's namespace may have its class, and
	// ReasonNotPermitted that it may not.
	ReasonPermitted    = "Permitted"
	ReasonNotPermitted = "NotPermitted"
	// ReasonNodeSchedulingOff says that no class and no slice has an effect.
	ReasonNodeSchedulingOff = "NodeSchedulingOff"
	// ReasonNoPools says that the runtime has no warm pool, ReasonNotNeeded that no function
	// can take from one, and ReasonFull that the pools have all their spare instances.
	ReasonNoPools   = "NoPools"
	ReasonNotNeeded = "NotNeeded"
	ReasonFull      = "Full"
	// ReasonServing says that calls go to the revision, and ReasonNoCalls that none do.
	ReasonServing = "Serving"
	ReasonNoCalls = "NoCalls"
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
