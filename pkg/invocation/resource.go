package invocation

// ResourceAttributes is what OTEL_RESOURCE_ATTRIBUTES tells the OpenTelemetry SDK of an
// instance about itself, in the words that gateways use of it in their spans. None of the
// values has characters that would have to be escaped there.
func ResourceAttributes(of FunctionKey, revision string, cid CID) string {
	return "faas.name=" + of.Name + ",faas.version=" + revision + ",faas.instance=" + string(cid) +
		",k8s.namespace.name=" + of.Namespace
}
