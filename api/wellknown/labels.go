package wellknown

// Labels and annotations of Functions, of their pods, and of spare instances.
const (
	// LabelFunction is the function's name, and LabelFunctionUID its UID.
	LabelFunction    = Group + "/function"
	LabelFunctionUID = Group + "/function-uid"
	// LabelCID is the instance's id within its function.
	LabelCID = Group + "/cid"
	// LabelRevision is FunctionRevision.Label of the revision that the instance was
	// started for, and LabelRevisionUID its UID.
	LabelRevision    = Group + "/revision"
	LabelRevisionUID = Group + "/revision-uid"
	// LabelPool is the warm pool that the instance belongs to, or belonged to until a
	// function took it, and LabelRuntime the ClusterRuntime that has the pool.
	LabelPool    = Group + "/pool"
	LabelRuntime = Group + "/runtime"
	// LabelScheduler is the scheduler to which a spare instance belongs.
	LabelScheduler = Group + "/scheduler"
	// LabelComponent says what a pod is: ComponentFunction for an instance of a
	// function, ComponentSpare for one that has none yet.
	LabelComponent    = "app.kubernetes.io/component"
	ComponentFunction = "function"
	ComponentSpare    = "spare"
	// LabelManagedBy has the value ManagedBy on everything that Windlass makes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "windlass"

	// AnnotationCode holds a function's inline code, which the pod mounts.
	AnnotationCode = Group + "/code"

	// AnnotationClass of a pod that is no instance puts it into the low band of its node, with the
	// value Batch, where the administrator allows it to.
	AnnotationClass = Group + "/class"

	// AnnotationAlgorithm of a Function is an experiment: the algorithm that says how
	// many instances it gets, instead of the one that the administrators chose.
	AnnotationAlgorithm = "experimental." + Group + "/scaling-algorithm"

	// FinalizerDrain keeps a Function that is being deleted until its
	// instances have ended.
	FinalizerDrain = Group + "/drain"
)
