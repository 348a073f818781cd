# Sourced by the others: prints each command that fails, and goes on.
set -uE
trap 'echo "FAILED: $BASH_COMMAND"' ERR
export AWS_PAGER=
account=$(aws sts get-caller-identity --query Account --output text)
role="arn:aws:iam::$account:role/Walk"

# Runs a command that has to fail with the error code that comes first.
refused() {
  local code=$1 said
  shift
  if said=$("$@" 2>&1) || [[ $said != *"($code)"* ]]; then
    echo "FAILED: $* was to be refused with $code: $said"
  fi
}

# Compares what a command printed with what is expected.
is() {
  [[ $1 == "$2" ]] || echo "FAILED: ${BASH_SOURCE[1]##*/}:${BASH_LINENO[0]}: $1 instead of $2"
}

# Asks until a command prints something that matches the pattern.
until_prints() {
  local pattern=$1
  shift
  for _ in {1..300}; do
    [[ $("$@") =~ $pattern ]] && return
    sleep 0.3
  done
  echo "FAILED: $* never printed $pattern"
}
