# Answers one HTTP request on standard input.

read -r method path _
length=0
while read -r name value && [ "${name%$'\r'}" != "" ]; do
  case "$name" in [Cc]ontent-[Ll]ength:) length=${value%$'\r'} ;; esac
done
[ "$length" = 0 ] || head -c "$length" >/dev/null

status="200 OK"
case "$path" in
  /version) body="{\"version\":\"$ENGINE_VERSION\"}" ;;
  /v1/models) body='{"object":"list","data":[{"id":"tinychat-6m","object":"model"}]}' ;;
  /v1/chat/completions)
    body="{\"id\":\"1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"tinychat-6m\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"$ENGINE_VERSION\"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}}"
    ;;
  /health) if [ "$ENGINE_FAULT" = never-healthy ]; then status="503 Service Unavailable"; fi; body='{}' ;;
  *) status="404 Not Found"; body='{}' ;;
esac
printf 'HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$status" "${#body}" "$body"
