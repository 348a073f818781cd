"""What is known of jobs: records, the moves of their statuses, and the store that keeps them."""
