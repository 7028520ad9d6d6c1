{{/* What every pod has. Takes (list $ component automount). */}}
{{- define "windlass.podDefaults" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index $root.Values $component -}}
serviceAccountName: {{ include "windlass.serviceAccountName" (list $root $component) }}
automountServiceAccountToken: {{ index . 2 }}
# The Services' variables would read as WINDLASS_<FLAG>.
enableServiceLinks: false
{{- include "windlass.podPullSecrets" $root }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or $values.tolerations (ne $component "etcd") }}
tolerations:
  {{- with $values.tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if ne $component "etcd" }}
  # A node that is lost is given up soon: others do the work meanwhile, but only
  # as long as there are any.
  {{- range list "not-ready" "unreachable" }}
  - key: node.kubernetes.io/{{ . }}
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 30
  {{- end }}
  {{- end }}
{{- end }}
affinity:
  {{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
  {{- else }}
  # A spread over zones besides that over nodes would switch both off on clusters
  # without zones.
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 50
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels:
              {{- include "windlass.selector" (list $root $component) | nindent 14 }}
  {{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
  {{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    {{- /* Two members of etcd on one node would make its end that of the quorum. */}}
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (eq $component "etcd") }}
    labelSelector:
      matchLabels:
        {{- include "windlass.selector" (list $root $component) | nindent 8 }}
    {{- if eq $component "etcd" }}
    # A node that admits no member is not one without members.
    nodeTaintsPolicy: Honor
    {{- else }}
    matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
{{- end }}

{{/* The pull Secrets of a pod, from the chart's and the global ones. */}}
{{- define "windlass.podPullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A container's security context. */}}
{{- define "windlass.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Labels of a component's pods. Takes (list $ component). */}}
{{- define "windlass.podLabels" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- /* A label of the chart's version would replace all pods with every chart. */ -}}
{{- $own := include "windlass.selector" . | fromYaml -}}
{{- $own = merge $own (dict "app.kubernetes.io/part-of" "windlass") -}}
{{- toYaml (merge $own (index $root.Values (include "windlass.valuesOf" $component)).podLabels $root.Values.commonLabels) -}}
{{- end }}

{{/* Annotations of a component's pods. Takes (list $ component $own); values come before own. */}}
{{- define "windlass.podAnnotations" -}}
{{- $component := index . 1 -}}
{{- $own := merge (dict "kubectl.kubernetes.io/default-container" $component) (index . 2) -}}
{{- toYaml (merge (dict) (default dict (index (index . 0).Values (include "windlass.valuesOf" $component)).podAnnotations) $own) -}}
{{- end }}

{{/* The arguments that gateway, scheduler and controller share. Takes (list $ component). */}}
{{- define "windlass.commonArgs" -}}
{{- $values := (index . 0).Values -}}
- --log-format={{ $values.log.format }}
- --log-level={{ $values.log.level }}
- --ops-listen=:8081
{{- if $values.pprof }}
- --pprof
{{- end }}
- --tls-dir=/etc/windlass/tls
- --tls-domain={{ include "windlass.tlsDomain" (index . 0) }}
{{- with $values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- end }}

{{/* The arguments that say where traces go. */}}
{{- define "windlass.tracingArgs" -}}
{{- with .Values.tracing.endpoint }}
- --tracing-endpoint={{ . }}
{{- end }}
- --tracing-protocol={{ .Values.tracing.protocol }}
- --tracing-sample-ratio={{ .Values.tracing.sampleRatio }}
{{- end }}

{{/* The arguments that say where the gateways are, and which hosts functions have. */}}
{{- define "windlass.hostsArgs" -}}
- --external-url={{ include "windlass.gatewayURL" . }}
- --policy-file=/etc/windlass/policy/policy.yaml
{{- with .Values.gateway.hosts.domain }}
- --hosts-domain={{ . }}
- {{ printf "--hosts-template=%s" $.Values.gateway.hosts.template | quote }}
{{- end }}
{{- end }}

{{/* The arguments that say where etcd is. */}}
{{- define "windlass.etcdArgs" -}}
- --etcd-endpoints={{ include "windlass.etcdEndpoints" . }}
- --etcd-prefix={{ .Values.etcd.prefix }}
{{- if .Values.etcd.enabled }}
- --etcd-tls-dir=/etc/windlass/tls
{{- else }}
{{- if .Values.etcd.existingSecret }}
- --etcd-tls-dir=/etc/windlass/etcd-tls
{{- end }}
{{- if .Values.etcd.auth.username }}
- --etcd-username={{ .Values.etcd.auth.username }}
- --etcd-password-file=/etc/windlass/etcd-auth/{{ .Values.etcd.auth.passwordKey }}
{{- end }}
{{- end }}
{{- end }}

{{/* An amount of memory in bytes. Takes a quantity, such as "1.5Gi", or a number. */}}
{{- define "windlass.bytes" -}}
{{- if kindIs "string" . -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $factors := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $unit := 1 -}}
{{- range list "Ki" "Mi" "Gi" "Ti" "Pi" "Ei" -}}
{{- $unit = mul $unit 1024 -}}
{{- $_ := set $factors . $unit -}}
{{- end -}}
{{- int64 (mulf $number (index $factors (trimPrefix $number .))) -}}
{{- else -}}
{{- int64 . -}}
{{- end -}}
{{- end }}

{{/* The whole seconds of a duration, such as "1m30s", rounded up. */}}
{{- define "windlass.seconds" -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $seconds = addf $seconds (mulf (trimSuffix $unit .) (index (dict "ms" 0.001 "s" 1 "m" 60 "h" 3600) $unit)) -}}
{{- end -}}
{{- ceil $seconds -}}
{{- end }}

{{/* The variable by which Go collects garbage before the kernel kills the process.
What is not on Go's heap has the rest. Takes the resources of a container. */}}
{{- define "windlass.memoryEnv" -}}
{{- with dig "limits" "memory" "" . -}}
- name: GOMEMLIMIT
  value: {{ include "windlass.bytes" . | mulf 0.9 | int64 | quote }}
{{ end -}}
{{- end }}

{{/* A role's environment variables. Takes (list $ component). */}}
{{- define "windlass.env" -}}
{{- $values := index (index . 0).Values (include "windlass.valuesOf" (index . 1)) -}}
{{ include "windlass.memoryEnv" $values.resources -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A role's probes, on its operations port. */}}
{{- define "windlass.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: ops}
  initialDelaySeconds: 5
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end }}

{{/* The mounts of gateway and scheduler, or of the controller without etcd. Takes (list $ component withEtcd). */}}
{{- define "windlass.mounts" -}}
{{- $root := index . 0 -}}
- name: tls
  mountPath: /etc/windlass/tls
  readOnly: true
{{- if and (index . 2) (not $root.Values.etcd.enabled) }}
{{- if $root.Values.etcd.existingSecret }}
- name: etcd-tls
  mountPath: /etc/windlass/etcd-tls
  readOnly: true
{{- end }}
{{- if $root.Values.etcd.auth.username }}
- name: etcd-auth
  mountPath: /etc/windlass/etcd-auth
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes of those mounts. Takes (list $ component withEtcd). */}}
{{- define "windlass.volumes" -}}
{{- $root := index . 0 -}}
- name: tls
  secret:
    secretName: {{ include "windlass.tlsSecret" (list $root (index . 1)) }}
    defaultMode: 0440
{{- if and (index . 2) (not $root.Values.etcd.enabled) }}
{{- with $root.Values.etcd.existingSecret }}
- name: etcd-tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- if $root.Values.etcd.auth.username }}
- name: etcd-auth
  secret:
    secretName: {{ $root.Values.etcd.auth.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- end }}

{{/* A component's PodDisruptionBudget. Takes (list $ component most), most being the largest number of replicas. */}}
{{- define "windlass.pdb" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $pdb := (index $root.Values $component).pdb -}}
{{- if and $pdb.enabled (gt (int (index . 2)) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "windlass.fullname" $root }}-{{ $component }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "windlass.annotations" (list $root dict) }}
  labels:
    {{- include "windlass.labels" (list $root $component) | nindent 4 }}
spec:
  maxUnavailable: {{ $pdb.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "windlass.selector" (list $root $component) | nindent 6 }}
{{- end }}
{{- end }}
