-- What Argo CD says of the health of a Function or a ClusterRuntime. Without it, Argo CD says
-- nothing of one. In the ConfigMap argocd-cm, it is the value of the keys
--   resource.customizations.health.windlass.dev_Function
--   resource.customizations.health.windlass.dev_ClusterRuntime
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is(kind, value)
  return conditions[kind] ~= nil and conditions[kind].status == value
end

local function say(health, kind)
  local condition = conditions[kind] or {}
  return {status = health, message = condition.message or "no controller has looked at it yet"}
end

if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return {status = "Progressing", message = "the last change of it has not been taken up yet"}
end
if is("Stalled", "True") then
  return say("Degraded", "Stalled")
end
if is("Reconciling", "True") then
  return say("Progressing", "Reconciling")
end
if not is("Ready", "True") then
  return say("Progressing", "Ready")
end
return say("Healthy", "Ready")
