{{/* The file that says to gateways who may call, and how much, and to them and to controllers
which hosts functions may have. Public keys of issuers are files beside it. */}}
{{- define "windlass.policy" -}}
{{- $issuers := dict -}}
{{- range $name, $issuer := .Values.gateway.auth.issuers -}}
{{- $told := omit $issuer "jwks" -}}
{{- if $issuer.jwks -}}
{{- $_ := set $told "jwksFile" (printf "%s.json" $name) -}}
{{- end -}}
{{- $_ := set $issuers $name $told -}}
{{- end }}
apiVersion: config.windlass.dev/v1alpha1
kind: GatewayPolicy
auth:
  {{- toYaml (merge (dict "issuers" $issuers) (omit .Values.gateway.auth "issuers")) | nindent 2 }}
tenancy:
  default: {{ include "windlass.tenant" .Values.tenancy.default }}
  namespaces:
    {{- range $namespace, $tenant := .Values.tenancy.namespaces }}
    {{ $namespace }}: {{ include "windlass.tenant" $tenant }}
    {{- else }} {}
    {{- end }}
{{- end }}

{{/* What a namespace may use. Helm reads large numbers as floating ones, and
writes them with an exponent. */}}
{{- define "windlass.tenant" -}}
{{- $fields := list -}}
{{- with .requestsPerSecond }}{{ $fields = append $fields (printf "requestsPerSecond: %v" .) }}{{ end -}}
{{- with .burst }}{{ $fields = append $fields (printf "burst: %d" (int64 .)) }}{{ end -}}
{{- with .maxInFlight }}{{ $fields = append $fields (printf "maxInFlight: %d" (int64 .)) }}{{ end -}}
{{- with .bodyMemory }}{{ $fields = append $fields (printf "bodyMemory: %s" .) }}{{ end -}}
{{- if hasKey . "hosts" }}{{ $fields = append $fields (printf "hosts: %s" (toJson .hosts)) }}{{ end -}}
{{- printf "{%s}" (join ", " $fields) -}}
{{- end }}

{{/* What of the policy is about hosts, which controllers read when they start. */}}
{{- define "windlass.grants" -}}
{{- $grants := dict "default" (pick .Values.tenancy.default "hosts") -}}
{{- range $namespace, $tenant := .Values.tenancy.namespaces -}}
{{- $_ := set $grants (printf "in %s" $namespace) (pick $tenant "hosts") -}}
{{- end -}}
{{- toJson $grants -}}
{{- end }}
