def handler(event, context):
    name = event.get("name", "world")
    print(f"{context.aws_request_id}: greeting {name}")
    return {"message": f"Hello, {name}!"}
