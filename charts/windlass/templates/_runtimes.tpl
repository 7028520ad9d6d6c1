{{/* The ClusterRuntime manifests, as a YAML list. */}}
{{- define "windlass.runtimes" -}}
{{- $manifests := list -}}
{{- range $key, $runtime := .Values.runtimes -}}
{{- if dig "enabled" true $runtime -}}
{{- $spec := dict "image" (include "windlass.image" (list $ $runtime.image)) -}}
{{- range $field := list "command" "protocol" "fileExtension" "env" -}}
{{- with get $runtime $field -}}
{{- $_ := set $spec $field . -}}
{{- end -}}
{{- end -}}
{{- $pools := list -}}
{{- range $name, $pool := $runtime.warmPools -}}
{{- $pools = append $pools (merge (dict "name" $name) $pool) -}}
{{- end -}}
{{- with $pools -}}
{{- $_ := set $spec "warmPools" . -}}
{{- end -}}
{{- $metadata := dict "name" (default $key $runtime.name) "labels" (dict "app.kubernetes.io/managed-by" "windlass") -}}
{{- $manifests = append $manifests (dict "apiVersion" "windlass.dev/v1alpha1" "kind" "ClusterRuntime" "metadata" $metadata "spec" $spec) -}}
{{- end -}}
{{- end -}}
{{- toYaml $manifests -}}
{{- end }}
