{{/* The rules of each role, apart by where they must hold: "everywhere" is the
cluster whatever .Values.watchNamespaces says, "functions" is where Functions are
run, and "own" is the release's namespace. */}}

{{- define "windlass.rules.gateway.functions" -}}
- apiGroups: [windlass.dev]
  resources: [functions, functionrevisions]
  verbs: [get, list, watch]
{{- end }}

{{- define "windlass.rules.scheduler.everywhere" -}}
- apiGroups: [windlass.dev]
  resources: [clusterruntimes]
  verbs: [get, list, watch]
# What all pods request decides where there is room for another, and the labels of
# namespaces which warm pools they have.
- apiGroups: [""]
  resources: [namespaces, nodes, pods]
  verbs: [get, list, watch]
# Agents' tokens whose key is not among those that were read.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
# The keys that sign the tokens of agents.
- nonResourceURLs: [/.well-known/openid-configuration, /openid/v1/jwks]
  verbs: [get]
{{- end }}

{{- define "windlass.rules.scheduler.functions" -}}
- apiGroups: [windlass.dev]
  resources: [functions, functionrevisions]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  # A function takes a spare instance by "patch".
  verbs: [create, delete, patch]
{{- end }}

{{- define "windlass.rules.node.everywhere" -}}
# A node agent asks for the pods of its own node, in all namespaces. No rule can restrict it to these.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
{{- end }}

{{- define "windlass.rules.controller.everywhere" -}}
- apiGroups: [windlass.dev]
  resources: [clusterruntimes]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: [windlass.dev]
  resources: [clusterruntimes/status]
  verbs: [patch]
{{- end }}

{{- define "windlass.rules.controller.functions" -}}
- apiGroups: [windlass.dev]
  resources: [functions]
  verbs: [get, list, watch, update, patch]
- apiGroups: [windlass.dev]
  resources: [functions/status]
  verbs: [update, patch]
- apiGroups: [windlass.dev]
  resources: [functionrevisions]
  # By "patch" it says how many instances are wanted.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [windlass.dev]
  resources: [functionrevisions/status]
  verbs: [patch]
- apiGroups: [windlass.dev]
  resources: [functions/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, update, patch, delete]
# Where there are any, it says at once how many instances are wanted.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{ include "windlass.rules.events" . }}
{{- end }}

{{- define "windlass.rules.controller.own" -}}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
# A name cannot limit "create".
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [windlass-controller]
  verbs: [get, update, patch]
{{ include "windlass.rules.events" . }}
{{- end }}

{{- define "windlass.rules.events" -}}
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- define "windlass.rules.cleanup.everywhere" -}}
- apiGroups: [windlass.dev]
  resources: [clusterruntimes]
  verbs: [get, list, delete]
{{- end }}

{{- define "windlass.rules.cleanup.functions" -}}
- apiGroups: [windlass.dev]
  resources: [functions]
  verbs: [get, list, update, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, delete]
{{- end }}

{{- define "windlass.rules.cleanup.own" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [windlass-controller]
  verbs: [delete]
{{- end }}

{{/* Roles and bindings of one component. Takes a dict: root, component, account,
annotations (may be nil), and the rules everywhere, functions and own (may be ""). */}}
{{- define "windlass.rbac" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "windlass.fullname" $root) .component -}}
{{- $namespaces := $root.Values.watchNamespaces -}}
{{- $cluster := list -}}
{{- with .everywhere }}{{ $cluster = append $cluster . }}{{ end -}}
{{- $local := dict -}}
{{- with .functions -}}
{{- if $namespaces -}}
{{- range $namespaces }}{{ $_ := set $local . $.functions }}{{ end -}}
{{- else -}}
{{- $cluster = append $cluster . -}}
{{- end -}}
{{- end -}}
{{- with .own -}}
{{- $own := list . -}}
{{- with get $local $root.Release.Namespace }}{{ $own = prepend $own . }}{{ end -}}
{{- $_ := set $local $root.Release.Namespace (join "\n" $own) -}}
{{- end -}}
{{- $subject := dict "kind" "ServiceAccount" "name" .account "namespace" $root.Release.Namespace -}}
{{- $labels := include "windlass.labels" (list $root .component) -}}
{{- if $cluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  {{- include "windlass.annotations" (list $root .annotations) }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- join "\n" $cluster | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  {{- include "windlass.annotations" (list $root .annotations) }}
  labels:
    {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - {{ toJson $subject }}
{{- end }}
{{- range $namespace, $rules := $local }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- include "windlass.annotations" (list $root $.annotations) }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- include "windlass.annotations" (list $root $.annotations) }}
  labels:
    {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - {{ toJson $subject }}
{{- end }}
{{- end }}
