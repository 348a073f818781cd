"""HTTP gateway: authentication, dispatch, and AWS wire protocols."""
